package source

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the longest line that Lines reads, in bytes.
const MaxLine = 256 << 20

// A Lines reads lines of any length up to MaxLine. Line ends are LF or CRLF and
// are not part of the line; the last line may lack one.
type Lines struct {
	r    *bufio.Reader
	long []byte
	n    int64
}

// NewLines reads lines from r.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, 1<<18)} }

// Next returns the next line, valid until the next call, and its number from 1;
// io.EOF after the last.
func (l *Lines) Next() (line []byte, number int64, err error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			if l.long = append(l.long, part...); len(l.long) > MaxLine {
				return nil, l.n + 1, fmt.Errorf("line %d is longer than %d bytes", l.n+1, MaxLine)
			}
			continue
		}
		if err != nil && err != io.EOF {
			return nil, l.n + 1, err
		}
		if len(l.long) > 0 {
			l.long = append(l.long, part...)
			part = l.long
		}
		if err == io.EOF && len(part) == 0 {
			return nil, l.n, io.EOF
		}
		l.n++
		return bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r")), l.n, nil
	}
}
