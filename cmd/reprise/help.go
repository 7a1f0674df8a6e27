package main

import (
	"strings"

	"github.com/urfave/cli/v3"
)

// helpWidth is the longest line of a flag's help, so that it can be read in a
// terminal of 80 columns.
const helpWidth = 80

func init() { cli.FlagStringer = flagHelp }

// flagHelp lays a flag out on lines of its own: the names, then what it does.
// One column for the names would be as wide as the longest of them.
func flagHelp(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	var names []string
	for _, name := range f.Names() {
		names = append(names, dashed(name))
	}
	head := strings.Join(names, ", ")
	if doc.TakesValue() {
		head += " " + doc.TypeName()
	}
	return head + "\n" + folded(doc.GetUsage()+defaultHelp(doc), helpWidth-6)
}

// defaultHelp names the default where it is one: a usage that names it in words
// is not followed by the zero that stands for it.
func defaultHelp(f cli.DocGenerationFlag) string {
	value := f.GetValue()
	zero := value == "" || value == "0s" || value == "0" || value == "false"
	if required, ok := f.(cli.RequiredFlag); ok && required.IsRequired() {
		return " (required)"
	}
	if zero || strings.Contains(f.GetUsage(), "default") {
		return ""
	}
	return " (default: " + value + ")"
}

// folded breaks text between words into lines of at most width bytes.
func folded(text string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
