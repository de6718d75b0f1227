package provider

import (
	"cmp"
	"context"
	"net/url"
	"strings"
)

// braveAddress, braveRating and bravePlace accept the two forms that Brave has used.
type braveAddress struct {
	DisplayAddress                                            string
	StreetAddress, AddressLocality, AddressRegion, PostalCode string
}

type braveRating struct {
	RatingValue              float64
	RatingCount, ReviewCount int
}

type bravePlace struct {
	ID, Title, Name, Phone, Description string
	Address                             braveAddress
	PostalAddress                       braveAddress `json:"postal_address"`
	Contact                             struct{ Telephone string }
	Rating                              braveRating
	PriceRange                          string `json:"price_range"`
}

// places returns the details of places, in the order of their ids.
func (b *brave) places(ctx context.Context, ids []string, q Query) ([]Place, error) {
	var details struct{ Results []bravePlace }
	if err := b.ask(ctx, "/res/v1/local/pois", url.Values{"ids": ids}, q, &details); err != nil {
		return nil, err
	}
	var texts struct {
		Results []struct{ ID, Description string }
	}
	// The descriptions are one more request: places are useful without them.
	_ = b.ask(ctx, "/res/v1/local/descriptions", url.Values{"ids": ids}, q, &texts)
	descriptions := map[string]string{}
	for _, t := range texts.Results {
		descriptions[t.ID] = t.Description
	}
	known := map[string]bravePlace{}
	for _, p := range details.Results {
		known[p.ID] = p
	}
	var places []Place
	for _, id := range ids {
		if p, ok := known[id]; ok {
			delete(known, id) // an id may be listed twice
			places = append(places, p.place(descriptions[id]))
		}
	}
	return places, nil
}

func (p bravePlace) place(description string) Place {
	line := func(s string) string { return cut(plain(s), maxTitle) }
	return Place{
		Name:        line(cmp.Or(p.Title, p.Name)),
		Address:     cmp.Or(line(p.PostalAddress.String()), line(p.Address.String())),
		Phone:       line(cmp.Or(p.Contact.Telephone, p.Phone)),
		Rating:      max(p.Rating.RatingValue, 0),
		Ratings:     max(p.Rating.RatingCount, p.Rating.ReviewCount, 0),
		PriceRange:  line(p.PriceRange),
		Description: cut(plain(cmp.Or(description, p.Description)), maxDescription),
	}
}

func (a braveAddress) String() string {
	if a.DisplayAddress != "" {
		return a.DisplayAddress
	}
	var parts []string
	for _, s := range []string{a.StreetAddress, a.AddressLocality, a.AddressRegion, a.PostalCode} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}
