package pathfence_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	pathfence "temper.dev/temper/pathfence/go"
)

// What the server and middleware look for in their own request is there.
func TestTheOuterRequestIsAsWithoutAFence(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	fence, err := pathfence.New(pathfence.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer fence.Close()
	mux := http.NewServeMux()
	files := func() int {
		left, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	mux.HandleFunc("POST /up/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil || files() != 1 {
			t.Errorf("the form gives %v, %d files", err, files())
		}
	})
	pattern := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fence.Handler(mux).ServeHTTP(w, r)
		pattern <- r.Pattern
	}))
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("file", "large")
	if err != nil {
		t.Fatal(err)
	}
	part.Write(make([]byte, 12<<20))
	parts.Close()
	response, err := http.Post(server.URL+"/up/7", parts.FormDataContentType(), &form)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := <-pattern; got != "POST /up/{id}" {
		t.Errorf("its pattern is %q, want POST /up/{id}", got)
	}
	server.Close() // waits until the connection is done with
	if left := files(); left != 0 {
		t.Errorf("%d files are left, want none", left)
	}
}

func TestOutcomesOfAnswersInParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		does   http.HandlerFunc
		status int
		failed int64
	}{
		{"a copy that fails before its first byte", func(w http.ResponseWriter, _ *http.Request) {
			if _, err := io.Copy(w, io.MultiReader(failing{})); err != nil {
				w.WriteHeader(http.StatusBadGateway)
			}
		}, http.StatusBadGateway, 1},
		{"events that are an error", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("content-type", "text/event-stream")
			w.WriteHeader(http.StatusBadGateway)
		}, http.StatusBadGateway, 1},
		{"a text", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "text") }, http.StatusOK, 0},
		{"a file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "doc.go") }, http.StatusOK, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, pathfence.Config{Workers: 1, Target: time.Minute, Classes: []pathfence.Class{{Name: "it", Keys: []string{"GET:/it"}}}})
			s.mux.HandleFunc("GET /it", c.does)
			status, _, _ := s.get("/it")
			s.awaits("its permit is back", func(now pathfence.State) bool { return now.InFlight == 0 })
			if it := s.fence.State().Classes[0]; status != c.status || it.Granted != 1 || it.Failed != c.failed {
				t.Errorf("it gives %d, granted %d, failed %d; want %d, 1, %d", status, it.Granted, it.Failed, c.status, c.failed)
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("it fails") }

// A handler that streams until its client has left hears of that.
func TestFlushFailsWhenTheClientHasLeft(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1})
	failed := make(chan error)
	s.mux.HandleFunc("GET /stream", func(w http.ResponseWriter, _ *http.Request) {
		for {
			io.WriteString(w, "part")
			if err := http.NewResponseController(w).Flush(); err != nil {
				failed <- err
				return
			}
		}
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET /stream HTTP/1.1\r\nhost: here\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := <-failed; err == nil {
		t.Error("Flush gives no error")
	}
}

// What writers of net/http have is there behind the fence, too.
func TestWhatAWriterHas(t *testing.T) {
	s := serve(t, pathfence.Config{Workers: 1})
	s.mux.HandleFunc("GET /it", func(w http.ResponseWriter, _ *http.Request) {
		if _, is := w.(http.Flusher); !is {
			t.Error("it is no http.Flusher")
		}
		if _, is := w.(http.Hijacker); !is {
			t.Error("it is no http.Hijacker")
		}
		if _, is := w.(io.ReaderFrom); !is {
			t.Error("it is no io.ReaderFrom")
		}
		if _, is := w.(io.StringWriter); !is {
			t.Error("it is no io.StringWriter")
		}
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}), control.EnableFullDuplex()); err != nil {
			t.Errorf("its controller gives %v", err)
		}
	})
	s.answers("/it", http.StatusOK)
}
