package main

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// message is one of the PostgreSQL protocol.
func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

func readMessage(c net.Conn, kinds int) (kind byte, body string, err error) {
	head := make([]byte, kinds+4)
	if _, err := io.ReadFull(c, head); err != nil {
		return 0, "", err
	}
	text := make([]byte, binary.BigEndian.Uint32(head[kinds:])-4)
	_, err = io.ReadFull(c, text)
	return head[0], string(text), err
}

// database answers as PostgreSQL does: a greeting, and what a query or a statement is answered.
type database struct {
	greeting, answer string
	starting         int // so many connections are told that it starts

	lock  sync.Mutex
	heard []string // kind and body of messages
}

const readyForQuery = "I"

func (d *database) serve(c net.Conn) {
	_, body, err := readMessage(c, 0)
	if err != nil {
		return
	}
	if d.hear("startup "+body) <= d.starting {
		trickle(c, message('E', "SFATAL\x00C57P03\x00Mstarting\x00\x00"))
		return
	}
	trickle(c, d.greeting)
	for {
		kind, body, err := readMessage(c, 1)
		if err != nil {
			return
		}
		d.hear(string(kind) + " " + body)
		switch kind {
		case 'Q', 'E':
			trickle(c, d.answer)
		}
		if kind == 'Q' || kind == 'S' {
			trickle(c, message('Z', readyForQuery))
		}
	}
}

// hear returns how much it has heard.
func (d *database) hear(what string) int {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.heard = append(d.heard, what)
	return len(d.heard)
}

// heardOf returns the first message that begins so.
func (d *database) heardOf(prefix string) string {
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, what := range d.heard {
		if strings.HasPrefix(what, prefix) {
			return what
		}
	}
	return ""
}

var welcome = message('R', "\x00\x00\x00\x00") + message('S', "server_version\x0015\x00") + message('K', "12345678") + message('Z', readyForQuery)

func TestPGLoadRunsAStatement(t *testing.T) {
	// A row larger than what is kept of a message.
	rows := message('2', "") + message('D', strings.Repeat("x", 5000)) + message('C', "SELECT 1\x00")
	for _, test := range []struct{ name, setup, query, bind string }{
		{"a key", "create table t", "select $1", "B \x00load\x00\x00\x00\x00\x01\x00\x00\x00\x017\x00\x00"},
		{"no key", "", "select 1", "B \x00load\x00\x00\x00\x00\x00\x00\x00"},
	} {
		d := &database{greeting: welcome, answer: rows, starting: 2}
		server := serve(t, d.serve)
		if measured(t, "pgload", server, "4", "1", "u", "d", test.setup, test.query, "7") == 0 {
			t.Errorf("%s: nothing was answered", test.name)
		}
		want := []string{"startup \x00\x03\x00\x00user\x00u\x00database\x00d\x00\x00", "P load\x00" + test.query + "\x00\x00\x00", test.bind, "E \x00\x00\x00\x00\x00"}
		if test.setup != "" {
			want = append(want, "Q "+test.setup+"\x00")
		} else if got := d.heardOf("Q"); got != "" {
			t.Errorf("%s: there is no setup, and the server heard %q", test.name, got)
		}
		for _, w := range want {
			// The key is random, from 1 to 7: it is sure to come up in some request, not in the first.
			if got := d.heardOf(w); got == "" {
				t.Errorf("%s: the server did not hear %q", test.name, w)
			}
		}
	}
}

func TestPGLoadRefuses(t *testing.T) {
	failed := message('E', "SERROR\x00C42P01\x00Mno table t\x00\x00")
	for _, test := range []struct{ name, greeting, answer, want string }{
		{"a password", message('R', "\x00\x00\x00\x0a") + message('Z', readyForQuery), "", "pgload: the server asks for a password: let it trust 127.0.0.1 (pg_hba.conf)\n"},
		{"no database", message('E', "SFATAL\x00Mno database d\x00\x00"), "", "pgload: the server answers: no database d\n"},
		{"an error", welcome, failed, "pgload: the server answers: no table t\n"},
		{"another protocol", "HTTP/1.1 400\r\n\r\n", "", "pgload: the server does not answer as PostgreSQL does\n"},
	} {
		d := &database{greeting: test.greeting, answer: test.answer}
		_, said, err := askFor(t, "pgload", serve(t, d.serve), 200, "1", "0", "u", "d", "", "select 1", "1")
		if err == nil || said != test.want {
			t.Errorf("%s: %v: got %q, want %q", test.name, err, said, test.want)
		}
	}
}
