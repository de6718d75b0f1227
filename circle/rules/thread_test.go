package rules

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		name    string
		comment Comment
		share   [2]float64 // share of seeds, from and to
		note    Note       // where it does not answer
	}{
		{"the user always", Comment{ByUser: true, Turns: 20, Ended: true}, [2]float64{1, 1}, ""},
		{"never after the end", Comment{OwnPost: true, Mentions: true, Turns: 1, Ended: true}, [2]float64{0, 0}, NoteEnded},
		{"never after six turns", Comment{OwnPost: true, Mentions: true, Turns: 6}, [2]float64{0, 0}, NoteEnded},
		{"whoever names it", Comment{Mentions: true, Turns: 1, LastThread: time.Second}, [2]float64{1, 1}, ""},
		{"mostly who comments on its post", Comment{OwnPost: true, Turns: 1, LastThread: time.Second}, [2]float64{0.9, 1}, NoteChoice},
		{"less often the fifth turn", Comment{OwnPost: true, Turns: 5}, [2]float64{0.3, 0.6}, NoteChoice},
		{"a pair that has just talked pauses", Comment{Turns: 2, LastThread: time.Minute}, [2]float64{0, 0}, NoteLimit},
		{"a pair that talked long ago", Comment{Turns: 2, LastThread: 2 * time.Hour}, [2]float64{0.8, 1}, NoteChoice},
		{"a thread that is under way", Comment{Turns: 3, LastThread: time.Minute}, [2]float64{0.7, 0.9}, NoteChoice},
	} {
		t.Run(test.name, func(t *testing.T) {
			yes := 0
			for seed := range uint64(2_000) {
				ok, note := Answers(seed, test.comment)
				if ok {
					yes++
				}
				if ok != (note == "") || !ok && note != test.note {
					t.Fatalf("%v %q", ok, note)
				}
			}
			if share := float64(yes) / 2_000; share < test.share[0] || share > test.share[1] {
				t.Errorf("%.2f", share)
			}
		})
	}
}

// The threads that characters make among themselves, if a part of the answers comes to
// nothing: the model has nothing to say, or repeats itself.
func TestThreadsAreDeepEnough(t *testing.T) {
	for _, lost := range []float64{0, 0.2, 0.35} {
		d := rand.New(rand.NewPCG(1, 2))
		seed, comments, answered, depths, threads, returned, capped := uint64(0), 0, 0, 0, 0, 0, 0
		for range 20_000 {
			threads++
			for turn := 1; ; turn++ {
				comments++
				depths += turn
				seed++
				ok, _ := Answers(seed, Comment{OwnPost: turn%2 == 1, Turns: turn})
				if !ok || d.Float64() < lost {
					break
				}
				answered++
				if turn == 1 {
					returned++
				}
				if turn+1 == maxTurns {
					capped++
				}
			}
		}
		share := float64(answered) / float64(comments)
		back := float64(returned) / float64(threads)
		depth := float64(depths) / float64(comments)
		t.Logf("%.0f %% of answers lost: %.0f %% of comments answered, authors return to %.0f %%, mean depth %.2f, %.1f %% reach six turns",
			100*lost, 100*share, 100*back, depth, 100*float64(capped)/float64(threads))
		if share < 0.22 || back < 0.5 || depth < 1.6 {
			t.Errorf("threads are too flat")
		}
		if capped > threads/4 {
			t.Errorf("threads run to their end")
		}
	}
}
