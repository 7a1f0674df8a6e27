package model

import _ "embed"

// SchemaJSON is the JSON Schema (draft 2020-12) of the model files that this
// package writes.
//
//go:embed schema.json
var SchemaJSON []byte
