package llm

import "context"

// Options tune Dependable. The zero value is ready to use.
type Options struct {
	Deadlines Deadlines
	Retry     Retry
	OnUse     func(context.Context, Use) // may be nil
}

// Dependable wraps a provider in everything that it needs to be used: from the
// inside out, usage is metered per attempt, a reply must be whole, must not keep
// us waiting, and is asked for again where that helps. Chain goes around it.
func Dependable(provider string, gen Generator, opts Options) Generator {
	if opts.OnUse != nil {
		gen = Metered(provider, gen, opts.OnUse)
	}
	gen = Checked(provider, gen)
	gen = WithDeadlines(provider, gen, opts.Deadlines)
	return WithRetry(gen, opts.Retry)
}
