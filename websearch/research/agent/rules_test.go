package agent

import (
	"slices"
	"strings"
	"testing"
)

func TestPlansByRule(t *testing.T) {
	for _, tt := range []struct {
		question, language string
		queries            []string
		parts              []string // the sub-questions begin with them or name them
	}{
		{"hello there", "en", nil, nil},
		{"你好呀", "zh", nil, nil},
		{"When was the bridge of Arven opened?", "en", []string{"bridge Arven opened"}, nil},
		{"When did the Halden Point light become automatic, and who was its last keeper?", "en", nil, []string{"When did the Halden Point light", "and who was its last keeper"}},
		{"云溪镇灯会的布龙有多长，由多少人抬？", "zh", nil, []string{"云溪镇灯会的布龙有多长", "由多少人抬"}},
		{"Who are the mayors of Paris, London and Berlin?", "en", nil, []string{"Paris", "London", "Berlin"}},
		{"Compare Norway and Sweden", "en", nil, []string{"Norway", "Sweden"}},
		{"龙井和普洱的区别是什么？", "zh", nil, []string{"龙井", "普洱"}},
	} {
		p := NewPlan(tt.question)
		if p.Language != tt.language || len(tt.queries) > 0 && !slices.Equal(p.Queries, tt.queries) || len(p.Questions) != len(tt.parts) {
			t.Errorf("the plan of %q is %+v", tt.question, p)
			continue
		}
		for i, part := range tt.parts {
			if !strings.Contains(p.Questions[i], part) || !strings.Contains(p.Questions[i], tt.question) {
				t.Errorf("part %d of %q is %q, want it with %q", i+1, tt.question, p.Questions[i], part)
			}
		}
	}
}
