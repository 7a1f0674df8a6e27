// Package chart draws what analyses found. A [Chart] is data: titles with units,
// scales, series and reference lines. It is drawn two ways that look alike: as a
// PNG or SVG file by gonum/plot ([Chart.WritePNG], [Chart.WriteSVG]), and by
// uPlot in a [Page], which is one HTML file that needs no network. A series is
// told from the others by dashes and shapes, not by its colour alone. Equal input
// gives equal bytes.
//
// [TrafficPage] and [TrafficCharts] make the page and the charts of a trace.
// [CDF] and [QQ] draw any distribution with laws beside it, and [Sections] turns
// the parts of a text report into sections, for the page of any report.
package chart
