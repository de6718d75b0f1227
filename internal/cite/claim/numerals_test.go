package claim

import "testing"

func TestNumbersAreTheSameInAllForms(t *testing.T) {
	for _, c := range []struct{ claim, source string }{
		{"thirteen hundred and fifty boats", "1,350 boats"},
		{"forty-two boats", "42 boats"},
		{"7.2 thousand jobs", "7,200 jobs"},
		{"half a million people", "500,000 people"},
		{"two dozen boats", "24 boats"},
		{"nineteen sixty", "1960"},
		{"three quarters of the wells", "75 percent of the wells"},
		{"a third of the wells", "33 percent of the wells"},
		{"ninety minutes", "an hour and a half"},
		{"270 minutes", "four and a half hours"},
		{"60 minutes", "within an hour"},
		{"a year and a half", "18 months"},
		{"3 km", "3,000 metres"},
		{"2.5 kg", "2500 grams"},
		{"£2.4m", "2.4 million pounds"},
		{"at 2:30 p.m.", "at 14:30"},
		{"the 2nd floor", "the second floor"},
		{"9 November 1931", "November 9, 1931"},
		{"三百一十二位读者", "312位读者"},
		{"一百二", "120"},
		{"1.2万人", "12,000 people"},
		{"2万3千人", "两万三千人"},
		{"一亿两千万", "1.2亿"},
		{"两万三千亿", "23000亿"},
		{"三千米", "3公里"},
		{"五百克", "0.5公斤"},
		{"三成五", "35%"},
		{"四分之三", "75%"},
		{"减少了50%", "减半"},
		{"一个半小时", "90分钟"},
		{"四斤半", "4.5斤"},
		{"半年", "6个月"},
		{"一年", "12个月"},
		{"晚上九点二十分", "21:20"},
		{"20世纪80年代", "1980年代"},
		{"零点五", "0.5"},
	} {
		if lacking := FactsOf("x " + c.claim).Missing(NewEvidence("x " + c.source)); lacking.Count() > 0 {
			t.Errorf("%s: %q lacks %v", c.claim, c.source, lacking.Numbers())
		}
	}
}

func TestNumbersAreOthers(t *testing.T) {
	for _, c := range []struct{ claim, source string }{
		{"in 1987", "in 1978"},
		{"1.2 million boats", "1,200 boats"},
		{"3 km", "3 miles"},
		{"3 metres", "3,000 metres"},
		{"a seven-year contract", "Line 7, a nine-year contract"},
		{"adults pay £12", "free for children under twelve"},
		{"14 March", "14 May"},
		{"得了三分", "得了四分"},
		{"5分钟", "5小时"},
		{"3比0", "3比2"},
		{"九月", "八月"},
	} {
		if lacking := FactsOf("x " + c.claim).Missing(NewEvidence("x " + c.source)); lacking.Count() == 0 {
			t.Errorf("%s: %q lacks nothing", c.claim, c.source)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "3万", "三万亿亿", "一半", "a half a million", "百分之", "£", "12:00", "第", "不", "除了", "\xff", "and and", "，。", "1,2,3.4.5"} {
		f.Add(text, "The tower, 31 metres high, was built in 1874. 塔高三十一米。")
	}
	f.Fuzz(func(_ *testing.T, claim, source string) {
		page := []*Text{Read(source, nil)}
		p := Pair{Claim: Read(claim, nil), Quote: page, Page: page}
		p.Coverage()
		p.Contradiction()
		FactsOf(claim).Missing(NewEvidence(source))
	})
}
