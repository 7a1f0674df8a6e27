// Package cloud opens objects of stores by their addresses: s3://bucket/key and
// gs://bucket/key. The drivers are large and are there only in programs built with
// the tag cloud; without it every function says so. file:// addresses need no driver:
// [Local] makes paths of them.
package cloud

import (
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// An Object is one object of a store, read in ranges as they are asked for.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64                       // bytes
	NewReader() (io.ReadCloser, error) // from the start
}

// Scheme returns the scheme of an address, such as s3; "" for a path.
func Scheme(name string) string {
	scheme, _, ok := strings.Cut(name, "://")
	if !ok || len(scheme) < 2 || strings.ContainsAny(scheme, "/\\. ") { // one letter is a drive
		return ""
	}
	return strings.ToLower(scheme)
}

// Local returns the path that a file:// address means, and any other name as it is.
func Local(name string) string {
	if Scheme(name) != "file" {
		return name
	}
	u, err := url.Parse(name)
	if err != nil || u.Host != "" && u.Host != "localhost" {
		return name
	}
	return filepath.FromSlash(u.Path)
}

// IsRemote tells addresses of stores from paths and file:// addresses.
func IsRemote(name string) bool { return Scheme(Local(name)) != "" }

// split cuts an address into that of its bucket, with the options after the question
// mark, and the key.
func split(address string) (bucket, key string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	key = strings.TrimPrefix(u.Path, "/")
	u.Path = ""
	return u.String(), key, nil
}

// Base returns the last part of the key of an address.
func Base(address string) string {
	_, key, err := split(address)
	if err != nil {
		return address
	}
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[i+1:]
	}
	return key
}

// Join appends the rest of a key to an address.
func Join(address, rest string) string {
	address, options, has := strings.Cut(address, "?")
	if has {
		return address + rest + "?" + options
	}
	return address + rest
}
