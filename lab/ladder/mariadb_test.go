package ladder

import "testing"

const sysbenchText = `[ 3s ] Checkpoint report:
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
      90.125 |**************************************** 7
 
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.250 |****                                     1
       2.032 |**************************************** 10
     100.500 |                                         2
 
SQL statistics:
    transactions:                        13     (38.96 per sec.)
`

func TestSysbenchsLastHistogramCounts(t *testing.T) {
	h, err := readSysbench(sysbenchText)
	if err != nil {
		t.Fatal(err)
	}
	if n, half, longest := h.TotalCount(), h.ValueAtQuantile(50), h.Max(); n != 13 || half/10_000 != 203 || longest/1_000_000 != 100 {
		t.Errorf("%d transactions, half within %d ns, the longest %d ns", n, half, longest)
	}
	for _, text := range []string{"", "Latency histogram (values are in milliseconds)\nvalue\n1.250 ****\n"} {
		if _, err := readSysbench(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
