package ladder

import (
	"testing"
	"time"
)

func TestTransactionsCountFromWhenTheyWereDue(t *testing.T) {
	// client, number, latency, script, end: due at 9.9, 10.0, 10.5 and 11.0 s; with a rate, a lag comes last.
	log := "0 1 100000 0 10 0\n" + "1 1 250000 0 10 250000 249000\n" + "0 2 2000000 0 12 500000\n" + "1 2 500000 0 11 500000\n"
	h, last, err := readTransactions([]byte(log), time.Unix(10, 0), time.Unix(11, 0))
	if err != nil {
		t.Fatal(err)
	}
	if n, longest := h.TotalCount(), h.Max(); n != 2 || longest < 1_990_000_000 || longest > 2_010_000_000 {
		t.Errorf("%d transactions, the longest %d ns", n, longest)
	}
	if last != time.Unix(11, 0) {
		t.Errorf("the last was due at %v", last)
	}
	if _, _, err := readTransactions([]byte("0 1 failed 0 10 0\n"), time.Unix(0, 0), time.Unix(1, 0)); err == nil {
		t.Error("a line without a latency was taken")
	}
}
