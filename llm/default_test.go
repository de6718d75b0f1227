package llm

import "testing"

// Every provider has its own words for a model that does not exist; other refusals are none of them.
func TestUnknownModelsAreRecognised(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status        int
		code, message string
		want          bool
	}{
		{404, "", "models/gemini-x is not found for API version v1beta, or is not supported for generateContent.", true},
		{404, "model_not_found", "The model `gpt-x` does not exist or you do not have access to it.", true},
		{404, "", "The model `x` does not exist.", true},
		{400, "", "gpt-x is not a valid model ID", true},
		{404, "", "No endpoints found for vendor/x:free.", true},
		{404, "", `model "llama9" not found, try pulling it first`, true},
		{400, "", "The model `x` has been decommissioned and is no longer supported.", true},
		{400, "", "Model Not Exist", true},
		{503, "model_not_found", "no channel", true},
		{404, "", "No endpoints found matching your data policy", false},
		{404, "", "Not Found", false},
		{400, "", "temperature is too high for this model", false},
		{500, "", "model not found", false},
	} {
		if got := SaysNoModel(tt.status, tt.code, tt.message); got != tt.want {
			t.Errorf("%d %q %q: %v", tt.status, tt.code, tt.message, got)
		}
	}
}
