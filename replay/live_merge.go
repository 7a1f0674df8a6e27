package replay

import (
	"cmp"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Add adds the progress of another part of the run: counts are sums, and quantiles are
// those of merged histograms, which both have to carry.
func (p *Progress) Add(o *Progress) {
	p.Sent, p.InFlight, p.Done, p.Failed = p.Sent+o.Sent, p.InFlight+o.InFlight, p.Done+o.Done, p.Failed+o.Failed
	p.Errors += o.Errors
	p.Input, p.Output, p.InputPerS, p.OutputPerS = p.Input+o.Input, p.Output+o.Output, p.InputPerS+o.InputPerS, p.OutputPerS+o.OutputPerS
	p.Sending, p.Unheard = p.Sending || o.Sending, p.Unheard || o.Unheard
	p.Lateness = max(p.Lateness, o.Lateness)
	if o.NextDue >= 0 && (p.NextDue < 0 || o.NextDue < p.NextDue) {
		p.NextDue = o.NextDue
	}
	for name, n := range o.Outcomes {
		if p.Outcomes == nil {
			p.Outcomes = map[string]int64{}
		}
		p.Outcomes[name] += n
	}
	mine, theirs := p.quantiles(), o.quantiles()
	for i := range mine {
		mine[i].add(theirs[i])
	}
	for _, c := range o.Causes {
		if i := slices.IndexFunc(p.Causes, func(m Cause) bool { return m.Name == c.Name }); i >= 0 {
			p.Causes[i].N += c.N
		} else {
			p.Causes = append(p.Causes, c)
		}
	}
	slices.SortFunc(p.Causes, func(a, b Cause) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	p.OtherCauses, p.OtherFailed = max(p.OtherCauses, o.OtherCauses), p.OtherFailed+o.OtherFailed
	for len(p.Causes) > topCauses {
		last := len(p.Causes) - 1
		p.OtherCauses++
		p.OtherFailed += p.Causes[last].N
		p.Causes = p.Causes[:last]
	}
}

func (p *Progress) quantiles() []*Quantiles {
	return []*Quantiles{&p.Late, &p.TTFT, &p.ITL, &p.RecentTTFT, &p.RecentITL}
}

// Keep takes from an earlier progress the histograms that this one does not carry.
func (p *Progress) Keep(o *Progress) {
	mine, theirs := p.quantiles(), o.quantiles()
	for i := range mine {
		if mine[i].Values == nil && mine[i].N > 0 {
			*mine[i] = *theirs[i]
		}
	}
}

// Light leaves the histograms out, for a message that says nothing new about them.
func (p *Progress) Light() {
	for _, q := range p.quantiles() {
		q.Values = nil
	}
}

// Whole makes Values of what was merged.
func (p *Progress) Whole() {
	for _, q := range p.quantiles() {
		if q.merged != nil {
			q.Values, _ = q.merged.Encode(hdrhistogram.V2CompressedEncodingCookieBase) // of a histogram in memory: no error
		}
	}
}

// add merges histograms.
func (q *Quantiles) add(o *Quantiles) {
	if o.N == 0 {
		return
	}
	if q.N == 0 {
		*q = *o
		return
	}
	if q.merged == nil {
		q.merged, _ = hdrhistogram.Decode(q.Values)
	}
	b, err := hdrhistogram.Decode(o.Values)
	if q.merged == nil || err != nil {
		return
	}
	q.merged.Merge(b)
	s := summed{h: q.merged, sum: q.Sum + o.Sum}
	*q = s.quantiles(false)
	q.merged = s.h
}
