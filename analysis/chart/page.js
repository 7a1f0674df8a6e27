// Draws the charts of a page: uPlot makes axes, sizes and zoom; the series are
// drawn here, as draw_series.go draws them.
(function () {
"use strict";
var charts = JSON.parse(document.getElementById("charts").textContent);
var root = document.documentElement;
var font = "12px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif";

// color returns a colour of the style sheet as it is now, light or dark.
function color(name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); }

// tickText writes a number as tickText of scale.go does.
function tickText(v, count) {
	var size = Math.abs(v);
	function digits(v) { return +v.toPrecision(count || 4); }
	if (size < 1e-12) return "0";
	if (size < 1e-4) return digits(v).toExponential();
	var units = [[1e12, 1e12, "T"], [1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]];
	for (var i = 0; i < units.length; i++)
		if (size >= units[i][0] * 0.9999999) return digits(v / units[i][1]) + units[i][2];
	return digits(v).toLocaleString("en", {maximumFractionDigits: 12});
}

function linearTicks(from, to, n) {
	n = Math.max(n, 3);
	var step = Math.pow(10, Math.floor(Math.log10((to - from) / n))), out = [];
	var k = [1, 2, 5, 10].find(function (k) { return (to - from) / (k * step) <= n; });
	step *= k;
	for (var i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * step; i++) out.push(i * step);
	return out;
}

function decadeTicks(from, to, leads, each) {
	var out = [];
	for (var k = Math.floor(Math.log10(from)); k <= Math.ceil(Math.log10(to)); k++)
		leads.forEach(function (lead) {
			var at = +(lead + "e" + k);
			if (at >= from && at <= to && k % each === 0) out.push(at);
		});
	return out;
}

// logTicks chooses labels as logTicks of scale.go does.
function logTicks(from, to, n) {
	var sets = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]], decades = Math.log10(to / from);
	for (var i = 0; i < sets.length; i++) {
		var out = decadeTicks(from, to, sets[i], 1);
		if (out.length >= 2 && out.length <= n) return out;
	}
	return decades < 2 ? linearTicks(from, to, n) : decadeTicks(from, to, [1], Math.max(1, Math.ceil(decades / n)));
}

var percentiles = [[0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99], [0, 50, 90, 99, 99.9, 99.99], [50, 99, 99.99]];

// percentileTicks chooses labels as percentileTicks of scale.go does.
function percentileTicks(from, to, n) {
	var out = [];
	percentiles.some(function (list) {
		out = list.map(function (p) { return 100 / (100 - p); }).filter(function (at) { return at >= from && at <= to; });
		return out.length <= n;
	});
	return out;
}

function nameTicks(names, from, to, n) {
	var each = Math.max(1, Math.ceil(names.length / n)), out = [];
	for (var i = 0; i < names.length; i += each) if (i >= from && i <= to) out.push(i);
	return out;
}

function ticks(of, from, to, n) {
	if (of.percentile) return percentileTicks(from, to, n);
	if (of.names) return nameTicks(of.names, from, to, n);
	return (of.log ? logTicks : linearTicks)(from, to, n);
}

// valueText writes a value of an axis.
function valueText(of, v, count) {
	if (of.percentile) return "p" + +(100 - 100 / v).toFixed(v < 100 ? 1 : v < 1000 ? 2 : 3);
	if (of.names) return of.names[Math.round(v)] || "";
	return tickText(v, count);
}

function axis(of, scale, room) {
	var across = scale === "x";
	return {
		scale: scale, side: across ? 2 : 3, font: font, labelFont: font, label: of.unit ? of.title + ", " + of.unit : of.title, labelSize: 20, labelGap: across ? 0 : 2,
		stroke: function () { return color("faint"); },
		grid: {stroke: function () { return color("rule"); }, width: 1},
		ticks: {stroke: function () { return color("faint"); }, width: 1, size: 5},
		size: across ? 32 : function (u, values) {
			var longest = (values || []).reduce(function (a, b) { return b.length > a.length ? b : a; }, "");
			u.ctx.save();
			u.ctx.font = font;
			var w = u.ctx.measureText(longest).width;
			u.ctx.restore();
			return Math.ceil(w) + 14;
		},
		filter: function (u, splits) { return splits; },
		splits: function (u, i, from, to) {
			var px = (across ? u.bbox.width : u.bbox.height) / devicePixelRatio || 300;
			var n = Math.max(2, Math.floor(px / room));
			return ticks(of, from, to, n);
		},
		values: function (u, splits) {
			var step = splits.length > 1 ? splits[1] - splits[0] : 1, end = splits.reduce(function (a, v) { return Math.max(a, Math.abs(v)); }, 0);
			var count = Math.min(15, Math.max(5, 1 + Math.ceil(Math.log10(end / step))));
			return splits.map(function (v) { return valueText(of, v, of.log && end > 5 * splits[0] ? 5 : count); });
		}
	};
}

// marks are the shapes of points, with radius r.
var marks = {
	circle: function (g, x, y, r) { g.arc(x, y, r, 0, 7); g.fill(); },
	ring: function (g, x, y, r) { g.arc(x, y, r, 0, 7); g.stroke(); },
	square: function (g, x, y, r) { g.rect(x - r, y - r, 2 * r, 2 * r); g.fill(); },
	triangle: function (g, x, y, r) { g.moveTo(x, y - 1.2 * r); g.lineTo(x + 1.1 * r, y + r); g.lineTo(x - 1.1 * r, y + r); g.fill(); },
	cross: function (g, x, y, r) { g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r); g.stroke(); },
	plus: function (g, x, y, r) { g.moveTo(x - r, y); g.lineTo(x + r, y); g.moveTo(x, y - r); g.lineTo(x, y + r); g.stroke(); }
};

function drawSeries(g, s, x, y, px) {
	var paint = color("s" + s.style);
	g.strokeStyle = g.fillStyle = paint;
	g.lineWidth = 1.8 * px;
	g.lineJoin = "round";
	function mark(i) {
		g.setLineDash([]);
		g.beginPath();
		marks[s.shape](g, x(s.x[i]), y(s.y[i]), 3 * px);
	}
	if (s.kind === "points" || s.kind !== "bars" && s.x.length === 1) {
		s.x.forEach(function (_, i) { mark(i); });
		return;
	}
	g.beginPath();
	if (s.kind === "bars") {
		s.x.forEach(function (v, i) {
			var a = x(v - 0.45 * s.width), b = x(v + 0.45 * s.width), top = y(s.y[i]);
			g.rect(a, top, b - a, y(0) - top);
		});
		g.fill();
		return;
	}
	s.x.forEach(function (v, i) {
		if (s.kind === "step" && i > 0) g.lineTo(x(v), y(s.y[i - 1]));
		g.lineTo(x(v), y(s.y[i]));
	});
	if (s.kind === "band") {
		for (var i = s.x.length - 1; i >= 0; i--) g.lineTo(x(s.x[i]), y(s.low[i]));
		g.globalAlpha = 0.22;
		g.fill();
		g.globalAlpha = 1;
		return;
	}
	g.setLineDash((s.dash || []).map(function (d) { return d * px; }));
	g.stroke();
	g.setLineDash([]);
	if (s.marks) s.x.forEach(function (_, i) { mark(i); });
}

function drawGrid(g, grid, x, y) {
	g.fillStyle = color("dusk");
	grid.cells.forEach(function (c) {
		var a = Math.round(x(grid.x[c[0]])), b = Math.round(x(grid.x[c[0] + 1]));
		var low = Math.round(y(grid.y[c[1]])), high = Math.round(y(grid.y[c[1] + 1]));
		g.globalAlpha = grid.shades[c[2]];
		g.fillRect(a, high, Math.max(1, b - a), Math.max(1, low - high));
	});
	g.globalAlpha = 1;
}

function drawLanes(g, lanes, x, y, px) {
	var paints = lanes.phases.map(function (_, i) { return color("s" + i); }), ink = color("ink");
	lanes.spans.forEach(function (s) {
		var at = s[2], middle = s[0] + 0.5;
		lanes.shares.forEach(function (share, i) {
			var from = x(at), half = 0.45 * share, low = y(middle - half), high = y(middle + half);
			at += s[3 + i];
			g.fillStyle = paints[i];
			g.globalAlpha = Math.max(0.45, share);
			var gap = i === lanes.shares.length - 1 && x(at) - from > 4 * px ? px : 0; // to the bar behind
			if (s[3 + i] > 0) g.fillRect(from, high, Math.max(0.5, x(at) - from - gap), Math.max(0.5, low - high));
		});
		g.globalAlpha = 1;
		if (s[1] > 0) {
			g.strokeStyle = g.fillStyle = ink;
			g.lineWidth = 1.4 * px;
			g.beginPath();
			marks[lanes.shapes[s[1] - 1]](g, x(at), y(middle), 2.5 * px);
		}
	});
}

// laneText says what the bar at a place is.
function laneText(lanes, x, y) {
	var lane = Math.floor(y), found = -1;
	lanes.spans.forEach(function (s, i) {
		if (s[0] !== lane || s[2] > x) return;
		var end = s[2];
		lanes.phases.forEach(function (_, k) { end += s[3 + k]; });
		if (x <= end) found = i;
	});
	if (found < 0) return "";
	var s = lanes.spans[found];
	return lanes.names[found] + ": " + lanes.phases.map(function (name, k) { return name + " " + tickText(s[3 + k]) + " s"; }).join(", ") + (s[1] > 0 ? ", " + lanes.marks[s[1] - 1] : "");
}

function drawLines(g, lines, x, y, box, px) {
	g.strokeStyle = color("ink");
	g.lineWidth = 1.2 * px;
	lines.forEach(function (l) {
		var at = l.vertical ? x(l.at) : y(l.at);
		g.setLineDash(l.dash.map(function (d) { return d * px; }));
		g.beginPath();
		g.moveTo(l.vertical ? at : box.left, l.vertical ? box.top : at);
		g.lineTo(l.vertical ? at : box.left + box.width, l.vertical ? box.top + box.height : at);
		g.stroke();
	});
	g.setLineDash([]);
}

// valueAt returns what a series says at x, in words; "" where it says nothing.
function valueAt(c, s, x) {
	var n = s.x.length, i = 0;
	while (i < n - 1 && s.x[i + 1] <= x) i++;
	if (n === 0 || x < s.x[0]) return "";
	if (s.kind === "points" || s.kind === "bars") {
		if (i < n - 1 && Math.abs(s.x[i + 1] - x) < Math.abs(s.x[i] - x)) i++;
		return tickText(s.y[i]) + " at " + valueText(c.x, s.x[i]);
	}
	function between(list) {
		if (s.kind === "step" || i === n - 1) return list[i];
		var to = function (v, log) { return log ? Math.log(v) : v; };
		var share = (to(x, c.x.log) - to(s.x[i], c.x.log)) / (to(s.x[i + 1], c.x.log) - to(s.x[i], c.x.log));
		var v = to(list[i], c.y.log) + (isFinite(share) ? share : 0) * (to(list[i + 1], c.y.log) - to(list[i], c.y.log));
		return c.y.log ? Math.exp(v) : v;
	}
	if (x > s.x[n - 1] && s.kind !== "step") return "";
	return s.kind === "band" ? tickText(between(s.low)) + " to " + tickText(between(s.y)) : tickText(between(s.y));
}

function readout(c, x, y) {
	function said(of, v) { return of.title + " " + valueText(of, v) + (of.unit ? " " + of.unit : ""); }
	var parts = [said(c.x, x)];
	if (c.grid && y !== null) {
		var cell = c.grid.cells.find(function (k) {
			return c.grid.x[k[0]] <= x && x < c.grid.x[k[0] + 1] && c.grid.y[k[1]] <= y && y < c.grid.y[k[1] + 1];
		});
		parts.push(said(c.y, y), c.grid.of + " " + (cell ? cell[2].toLocaleString("en") : 0));
	}
	if (c.lanes && y !== null) {
		var bar = laneText(c.lanes, x, y);
		if (bar) parts.push(bar);
	}
	c.series.forEach(function (s) {
		var text = valueAt(c, s, x);
		if (text !== "") parts.push(s.name + " " + text);
	});
	return parts.join(" · ");
}

function height(c, width) { return Math.round(c.lanes ? Math.min(560, Math.max(320, width * 0.5)) : Math.min(360, Math.max(230, width * (c.wide ? 0.3 : 0.55)))); }

function make(div) {
	var c = charts[+div.dataset.chart], out = div.parentNode.querySelector(".readout");
	var xs = c.x.range, ys = c.y.range;
	function say(u) {
		var left = u.cursor.left;
		out.textContent = left >= 0 ? readout(c, u.posToVal(left, "x"), u.cursor.top >= 0 ? u.posToVal(u.cursor.top, "y") : null) : "";
	}
	function paint(u) {
		var g = u.ctx, box = u.bbox, px = devicePixelRatio || 1;
		function x(v) { return u.valToPos(v, "x", true); }
		function y(v) { return u.valToPos(v, "y", true); }
		g.save();
		g.beginPath();
		g.rect(box.left, box.top, box.width, box.height);
		g.clip();
		if (c.lanes) drawLanes(g, c.lanes, x, y, px);
		if (c.grid) drawGrid(g, c.grid, x, y);
		[true, false].forEach(function (bands) {
			c.series.forEach(function (s) { if ((s.kind === "band") === bands) drawSeries(g, s, x, y, px); });
		});
		drawLines(g, c.lines || [], x, y, box, px);
		g.restore();
	}
	var u = new uPlot({
		width: div.clientWidth, height: height(c, div.clientWidth), padding: [8, 16, 0, 0],
		legend: {show: false},
		cursor: {points: {show: false}, y: !!(c.grid || c.lanes), drag: {x: true, y: false}},
		scales: {
			x: {time: false, distr: c.x.log ? 3 : 1, range: function (u, a, b) { return a < b ? [a, b] : xs; }},
			y: {distr: c.y.log ? 3 : 1, range: function () { return ys; }}
		},
		axes: [axis(c.x, "x", 58), axis(c.y, "y", 36)],
		series: [{}, {scale: "y", paths: function () { return null; }, points: {show: false}}],
		hooks: {draw: [paint], setCursor: [say]}
	}, [xs, ys], div);
	div.addEventListener("keydown", function (e) {
		var step = {ArrowLeft: -1, ArrowRight: 1}[e.key], w = u.over.clientWidth;
		if (!step || e.ctrlKey || e.altKey || e.metaKey) return;
		e.preventDefault();
		var left = u.cursor.left >= 0 ? u.cursor.left + step * w / 60 : step > 0 ? 0 : w;
		u.setCursor({left: Math.min(w, Math.max(0, left)), top: u.over.clientHeight / 2});
	});
	div.addEventListener("blur", function () { u.setCursor({left: -10, top: -10}); });
	return u;
}

var divs = [].slice.call(document.querySelectorAll(".plot"));
var plots = divs.map(make);
function redraw() { plots.forEach(function (u) { u.redraw(false, true); }); }
function fit() {
	plots.forEach(function (u, i) {
		var w = divs[i].clientWidth;
		if (w > 0 && w !== u.width) u.setSize({width: w, height: height(charts[i], w)});
	});
}
addEventListener("resize", fit);

// The button turns to the other of light and dark; until then the system decides.
var system = matchMedia("(prefers-color-scheme: dark)"), button = document.getElementById("theme"), chosen = "";
function dark() { return chosen ? chosen === "dark" : system.matches; }
function show(theme) {
	root.classList.remove("light", "dark");
	if (theme) root.classList.add(theme);
	button.textContent = dark() ? "Light" : "Dark";
	button.setAttribute("aria-label", "Show this page in " + button.textContent.toLowerCase() + " colours");
	redraw();
}
button.hidden = false;
button.addEventListener("click", function () {
	chosen = dark() ? "light" : "dark";
	show(chosen);
});
system.addEventListener("change", function () { show(chosen); });
var opened = [];
addEventListener("beforeprint", function () {
	root.classList.remove("dark");
	root.classList.add("light");
	opened = [].slice.call(document.querySelectorAll(".listing:not([open])"));
	opened.forEach(function (d) { d.open = true; });
	redraw();
});
addEventListener("afterprint", function () {
	opened.forEach(function (d) { d.open = false; });
	show(chosen);
});
show("");
})();
