package ladder

import (
	"fmt"
	"net"
	"time"
)

// awaitListener returns once something accepts connections at addr. A server that has just been
// started offers no event to wait for, so it is asked again; after 30 s of guest time it has failed.
func awaitListener(network, addr string) error {
	var err error
	for range 600 {
		var c net.Conn
		if c, err = net.Dial(network, addr); err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens at %s: %w", addr, err)
}
