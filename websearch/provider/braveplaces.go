package provider

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"nodest/llm/loose"
)

// braveAddress, braveRating and bravePlace accept the two forms that Brave has used.
type braveAddress struct {
	DisplayAddress                                            loose.Text
	StreetAddress, AddressLocality, AddressRegion, PostalCode loose.Text
}

type braveRating struct {
	RatingValue              loose.Number
	RatingCount, ReviewCount loose.Number
}

type bravePlace struct {
	ID, Title, Name, Phone, Description loose.Text
	Address                             braveAddress
	PostalAddress                       braveAddress `json:"postal_address"`
	Contact                             struct{ Telephone loose.Text }
	Rating                              braveRating
	PriceRange                          loose.Text `json:"price_range"`
}

// places returns the details of places, in the order of their ids.
func (b *brave) places(ctx context.Context, ids []string, q Query) ([]Place, error) {
	var details struct{ Results loose.List[bravePlace] }
	if err := b.ask(ctx, "/res/v1/local/pois", url.Values{"ids": ids}, q, &details); err != nil {
		return nil, err
	}
	var texts struct {
		Results loose.List[struct{ ID, Description loose.Text }]
	}
	// The descriptions are one more request: places are useful without them.
	_ = b.ask(ctx, "/res/v1/local/descriptions", url.Values{"ids": ids}, q, &texts)
	descriptions := map[string]loose.Text{}
	for _, t := range texts.Results {
		descriptions[string(t.ID)] = t.Description
	}
	known := map[string]bravePlace{}
	for _, p := range details.Results {
		known[string(p.ID)] = p
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

func (p bravePlace) place(description loose.Text) Place {
	line := func(s loose.Text) string { return cut(plain(string(s)), maxTitle) }
	rating := 0.0
	if f := p.Rating.RatingValue.Float(); f != nil {
		rating = *f
	}
	return Place{
		Name:        line(cmp.Or(p.Title, p.Name)),
		Address:     cmp.Or(line(p.PostalAddress.text()), line(p.Address.text())),
		Phone:       line(cmp.Or(p.Contact.Telephone, p.Phone)),
		Rating:      max(rating, 0),
		Ratings:     max(p.Rating.RatingCount.IntOr(0), p.Rating.ReviewCount.IntOr(0), 0),
		PriceRange:  line(p.PriceRange),
		Description: cut(plain(string(cmp.Or(description, p.Description))), maxDescription),
	}
}

func (a braveAddress) text() loose.Text {
	if a.DisplayAddress != "" {
		return a.DisplayAddress
	}
	var parts []string
	for _, s := range []loose.Text{a.StreetAddress, a.AddressLocality, a.AddressRegion, a.PostalCode} {
		if s != "" {
			parts = append(parts, string(s))
		}
	}
	return loose.Text(strings.Join(parts, ", "))
}
