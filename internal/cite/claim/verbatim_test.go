package claim

import "testing"

// A sentence that the source has letter by letter exchanges no parts, whatever the sentences around it say.
func TestAQuoteIsNoExchange(t *testing.T) {
	for claim, source := range map[string]string{
		"Another way to see the difference between a ledger and a diary":                            "Another way to see the difference between a ledger and a diary is that a ledger has 2 columns, paid and owed, whereas with a diary there are now 3 columns: day, place and weather.",
		"While a door of the mill is open in a mill with sluices, the miller keeps a second wheel.": "While a door of the mill is open in a mill with sluices, the miller keeps a second wheel.\nIn a mill with sluices the second wheel is open while the miller keeps a door of the mill.",
		"每当水位变化时，闸门的铃就会响。":                                                                          "每当水位变化时，闸门的铃就会响。如果希望铃只在水位变化时响一次，请使用铜栓。",
	} {
		if f := pairOf(claim, source).Contradiction(); f != nil && (f.Why == WhyRole || f.Why == WhyName) {
			t.Errorf("%q: %s %q", claim, f.Name, f.What)
		}
	}
	if f := pairOf("The dog bit the postman.", "The postman bit the dog.").Contradiction(); f == nil {
		t.Error("an exchange passes")
	}
}
