package main

// measures are all of them, in the order of the table.
var measures []measure

func init() {
	measures = append(measures, parseMeasures()...)
	measures = append(measures, clientMeasures()...)
	measures = append(measures, dispatchMeasures()...)
	measures = append(measures, truthMeasures()...)
	measures = append(measures, importMeasures()...)
	measures = append(measures, fileMeasures()...)
	measures = append(measures, commandMeasures()...)
}
