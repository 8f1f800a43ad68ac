package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// Secret signs the names of this process's requests, so that nobody else can make one up. A name means nothing once its
// request is over.
type Secret [32]byte

// NewSecret makes one up.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

const named = 16 // bytes of a name: permit and depth

// Name names a request for a call that it makes: its permit, and how often its chain has been here.
func (s *Secret) Name(permit, depth int64) string {
	all := binary.BigEndian.AppendUint64(nil, uint64(permit))
	all = binary.BigEndian.AppendUint64(all, uint64(depth))
	return base64.RawURLEncoding.EncodeToString(s.sign(all))
}

// Caller is who made a call, by what the header says: 0 and 0 where nobody of this process did. The depth is that of the call:
// how many requests of this process wait for it, its caller included.
func (s *Secret) Caller(said string) (permit, depth int64) {
	all, err := base64.RawURLEncoding.DecodeString(said)
	if err != nil || len(all) != named+sha256.Size || !hmac.Equal(s.sign(all[:named:named]), all) {
		return 0, 0
	}
	return int64(binary.BigEndian.Uint64(all)), int64(binary.BigEndian.Uint64(all[8:])) + 1
}

func (s *Secret) sign(name []byte) []byte {
	mac := hmac.New(sha256.New, s[:])
	mac.Write(name)
	return mac.Sum(name)
}
