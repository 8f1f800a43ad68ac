package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// readCommand reads one command of the Redis protocol.
func readCommand(in *bufio.Reader) (words []string, err error) {
	var n, length int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &length); err != nil {
			return nil, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:length]))
	}
	return words, nil
}

// lastKey is the last of ten.
const lastKey = "0000009"

// store answers as Redis does, but for an answer to GET of its own.
func store(get string, gets, sets *atomic.Int64) func(net.Conn) {
	return func(c net.Conn) {
		for in := bufio.NewReader(c); ; {
			words, err := readCommand(in)
			if err != nil {
				return
			}
			if len(words[1]) != len(lastKey) || words[1] > lastKey {
				trickle(c, "-ERR no key is "+words[1]+"\r\n")
			} else if words[0] == "SET" && words[2] == strings.Repeat("x", 20) {
				sets.Add(1)
				trickle(c, "+OK\r\n")
			} else if words[0] == "GET" {
				gets.Add(1)
				trickle(c, get)
			} else {
				trickle(c, "-ERR what is "+strings.Join(words, " ")+"\r\n")
			}
		}
	}
}

func TestRedisLoadGetsAndSets(t *testing.T) {
	for _, test := range []struct {
		name                  string
		prepare, keys, writes string
		wantGets, wantSets    bool
	}{
		{"reads of what was set before", "1", "10", "0", true, true},
		{"reads only", "0", "10", "0", true, false},
		{"writes only", "0", "10", "1", false, true},
	} {
		var gets, sets atomic.Int64
		server := serve(t, store("$4\r\na\r\nb\r\n", &gets, &sets))
		if measured(t, "redisload", server, "4", test.prepare, test.keys, "20", test.writes) == 0 {
			t.Errorf("%s: nothing was answered", test.name)
		}
		if gets.Load() > 0 != test.wantGets || sets.Load() > 0 != test.wantSets || test.wantGets && test.wantSets && sets.Load()%10 != 0 {
			t.Errorf("%s: %d gets, want any: %v; %d sets, want any: %v", test.name, gets.Load(), test.wantGets, sets.Load(), test.wantSets)
		}
	}
}

func TestRedisLoadRefuses(t *testing.T) {
	for _, test := range []struct{ name, get, want string }{
		{"an error", "-LOADING the data set\r\n", "redisload: the server answers: -LOADING the data set\n"},
		{"a lost key", "$-1\r\n", "redisload: the server has lost a key that was set: give it more memory, or offer fewer keys\n"},
		{"another protocol", "HTTP/1.1 400\r\n", "redisload: the server does not answer as Redis does: HTTP/1.1 400\n"},
	} {
		var gets, sets atomic.Int64
		_, said, err := askFor(t, "redisload", serve(t, store(test.get, &gets, &sets)), 200, "1", "0", "10", "20", "0")
		if err == nil || said != test.want {
			t.Errorf("%s: %v: got %q, want %q", test.name, err, said, test.want)
		}
	}
	closes := serve(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
	_, said, err := askFor(t, "redisload", closes, 200, "1", "1", "10", "20", "0")
	if want := "redisload: the server closes a connection before it has answered: does it speak the Redis protocol?\n"; err == nil || said != want && !strings.Contains(said, "reset by peer") {
		t.Errorf("a server that closes: %v: got %q, want %q", err, said, want)
	}
}
