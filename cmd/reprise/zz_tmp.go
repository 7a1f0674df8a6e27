package main

import "github.com/urfave/cli/v3"

func replayCommand() *cli.Command { return &cli.Command{Name: "replay"} }
func mockCommand() *cli.Command   { return &cli.Command{Name: "mock"} }
