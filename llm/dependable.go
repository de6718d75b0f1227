package llm

// Options tune Dependable. The zero value is ready to use.
type Options struct {
	Deadlines Deadlines
	Retry     Retry
}

// Dependable wraps a provider in everything that it needs to be used: from the
// inside out, a reply must be whole, must not keep us waiting, and is asked for
// again where that helps. Chain goes around it.
func Dependable(provider string, gen Generator, opts Options) Generator {
	return WithRetry(WithDeadlines(provider, Checked(provider, gen), opts.Deadlines), opts.Retry)
}
