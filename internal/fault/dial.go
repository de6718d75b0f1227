package fault

import (
	"context"
	"errors"
	"net"
	"os"
)

// DialCause is why a connection was not made, without the addresses, which the error
// repeats for each one that was tried.
func DialCause(err error) error {
	var dns *net.DNSError
	var call *os.SyscallError
	var dial *net.OpError
	switch {
	case errors.As(err, &dns):
		return errors.New(dns.Err)
	case errors.As(err, &call):
		return call.Err
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no response")
	case errors.As(err, &dial):
		return dial.Err
	}
	return err
}
