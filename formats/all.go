package formats

// All are the known formats, in the order that help prints them.
var All = []Format{}
