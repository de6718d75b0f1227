package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"gopkg.in/yaml.v3"
)

// openapiYAML is the reference of the REST interface, written by hand; tests
// hold every answer against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// asyncapiYAML is the same for the frames of the WebSocket. It refers to the
// objects of /openapi.json.
//
//go:embed asyncapi.yaml
var asyncapiYAML []byte

// openapiJSON is the document as clients get it.
var openapiJSON = sync.OnceValue(func() []byte {
	var doc any
	if err := yaml.Unmarshal(openapiYAML, &doc); err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err)) // embedded above, parsed by a test
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Errorf("openapi.yaml: %w", err))
	}
	return text
})
