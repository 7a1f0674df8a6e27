package baseten

import "reprise/formats/source"

// Detect tells a Baseten table by its columns. A table that has the arrival and
// lacks another required column is of this format too, so that the import can
// say which one.
func Detect(h *source.Head) (evidence string, ok bool) {
	if h.Container != "parquet" && h.Container != "arrow" || !h.Has(colTime) {
		return "", false
	}
	for _, c := range []string{colPrompt, colInput, colOutput} {
		if h.Has(c) {
			return h.Container + " with the columns " + colTime + " and " + c, true
		}
	}
	return "", false
}
