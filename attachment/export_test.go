package attachment

// Occupy takes all places in which images are decoded.
func (svc *Service) Occupy() {
	for range atOnce {
		svc.decoding <- struct{}{}
	}
}
