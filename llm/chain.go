package llm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"

	"nodest/internal/fault"
)

// Link is one provider of a Chain.
type Link struct {
	Provider  string
	Model     string // empty: the provider's default, for the first link the request's model
	Generator Generator
}

// Chain asks the first link, and the next one when a link fails in a way that another provider can
// cure and nothing of a reply was passed on yet. The request names a model for the first link only,
// because no other provider knows it. Every chunk names the provider, and the last one the model
// that really answered. When all fail, the error is that of the first link, which the user chose;
// the log has the others. The offline model is used only where it is listed.
func Chain(log *slog.Logger, links ...Link) Generator {
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		var first error
		for i, link := range links {
			repeatable, err := pass(link.stream(ctx, req, i == 0), yield)
			if err == nil || errors.Is(err, errBroken) {
				return
			}
			if !repeatable || req.Alone || !curedByProvider(err) || ctx.Err() != nil {
				if i > 0 {
					err = fallbackError{err}
				}
				yield(Chunk{}, err)
				return
			}
			if first == nil {
				first = err
			}
			if i+1 < len(links) {
				log.WarnContext(ctx, "provider failed, trying the next one", "provider", link.Provider,
					"next", links[i+1].Provider, "code", fault.Public(err).Code, "status", ProviderStatus(err), "reason", fault.Public(err).Message)
			}
		}
		if first == nil {
			first = fault.New(fault.NotConfigured, "no model provider is configured").With("what", "provider")
		}
		yield(Chunk{}, first)
	})
}

// fallbackError is the error of a link behind the first.
type fallbackError struct{ error }

func (e fallbackError) Unwrap() error { return e.error }

// OfFallback reports whether err is that of a link of a Chain behind the first: it says nothing
// about the model that was asked for.
func OfFallback(err error) bool { return errors.As(err, new(fallbackError)) }

// stream asks one link and adds provider and model to its chunks.
func (l Link) stream(ctx context.Context, req Request, first bool) iter.Seq2[Chunk, error] {
	if !first || req.Model == "" {
		req.Model = l.Model
	}
	return func(yield func(Chunk, error) bool) {
		model := req.Model
		for c, err := range l.Generator.Stream(ctx, req) {
			if err == nil {
				c.Provider = l.Provider
				model = cmp.Or(c.Asked, model)
				if c.Model != "" {
					model = c.Model
				}
				if c.Last {
					c.Model = model
				}
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// curedByProvider reports whether another provider may succeed where err
// happened. What a filter blocked stays blocked: a fallback is for failures, not for
// getting around a refusal. What the caller cures by asking without tools is the caller's.
func curedByProvider(err error) bool {
	if aboutTools(err) {
		return false
	}
	switch fault.Public(err).Code {
	case fault.UpstreamAuth, fault.UpstreamQuota, fault.UpstreamRate, fault.UpstreamDown,
		fault.UpstreamBadAnswer, fault.UpstreamTimeout, fault.EmptyReply, fault.NotConfigured, fault.ModelNotFound:
		return true
	}
	return false
}

// Ref names a provider and, optionally, one of its models.
type Ref struct{ Provider, Model string }

// ParseRefs reads a comma list of provider[:model]. A model's id may hold colons
// itself; only the first one separates.
func ParseRefs(list string) ([]Ref, error) {
	var refs []Ref
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		provider, model, _ := strings.Cut(part, ":")
		ref := Ref{strings.ToLower(strings.TrimSpace(provider)), strings.TrimSpace(model)}
		if ref.Provider == "" {
			return nil, fault.InvalidField("fallbacks", "format", "%q is not of the form provider[:model]", part)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}
