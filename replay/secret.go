package replay

import "strings"

// shortestSecret keeps words such as "close" or "gzip" in causes readable.
const shortestSecret = 8

// hide takes the key and the values of the user's headers out of text that a
// server sent: some repeat the key they refuse.
func (c *Config) hide(text string) string {
	hidden := []string{c.APIKey}
	for _, h := range c.Headers {
		hidden = append(hidden, h.Value)
		if _, value, ok := strings.Cut(h.Value, " "); ok { // Bearer KEY
			hidden = append(hidden, value)
		}
	}
	for _, secret := range hidden {
		if len(secret) >= shortestSecret || secret != "" && secret == c.APIKey {
			text = strings.ReplaceAll(text, secret, "(hidden)")
		}
	}
	return text
}
