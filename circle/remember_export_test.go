package circle

// The functions that the tests of memories call.
var (
	RememberPost    = rememberPost
	RememberComment = rememberComment
	ForgetPost      = forgetPost
	ForgetComment   = forgetComment
)
