package cite

import (
	"context"

	"nodest/internal/cite/script"
	"nodest/internal/index"
	"nodest/llm"
)

// An image and its sentence share at least this much: a caption says little.
const (
	minImageCosine  = 0.35
	minImageOverlap = 0.125
)

// Image is a picture on a page.
type Image struct {
	URL     string
	PageURL string
	Alt     string
	Caption string
}

// ImageReference is an image that shows what a sentence of the answer is about.
type ImageReference struct {
	URL                 string  `json:"url"`
	PageURL             string  `json:"pageUrl"`
	Context             string  `json:"context"` // caption, or the text instead of the image
	RelevanceScore      float64 `json:"relevanceScore"`
	AnswerChunk         string  `json:"answerChunk"`
	AnswerChunkPosition Span    `json:"answerChunkPosition"` // in the answer without marks, in code points
}

// ImageReferences matches images with the sentences of an answer: at most one for each, the
// best pairs first, in the order of the answer. Images without a text are left out.
func ImageReferences(ctx context.Context, emb llm.Embedder, answer string, images []Image, most int) []ImageReference {
	_, sentences := claims(StripMarks(answer), 2*shortSentence)
	var texts []string
	for _, s := range sentences {
		texts = append(texts, s.Text)
	}
	var captions []passage
	for i, image := range images {
		text := image.Caption
		if script.IsBlank(text) {
			text = image.Alt
		}
		if hasLetters(text) && len(captions) < maxSourceChunks {
			captions = append(captions, passage{source: i, text: text})
		}
	}
	if most <= 0 || len(texts) == 0 || len(captions) == 0 {
		return nil
	}
	rows, _, _ := match(ctx, emb, texts, captions, matching{most + 1, minImageCosine, minImageOverlap, index.Terms, true})
	var out []ImageReference
	for i, h := range assign(rows, most) {
		if h.chunk < 0 {
			continue
		}
		caption := captions[h.chunk]
		image := images[caption.source]
		out = append(out, ImageReference{image.URL, image.PageURL, caption.text, h.score, sentences[i].Text, sentences[i].Points})
	}
	return out
}
