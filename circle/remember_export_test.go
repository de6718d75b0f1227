package circle

// What the tests of memories call.
var (
	RememberPost    = rememberPost
	RememberComment = rememberComment
	ForgetPost      = forgetPost
	ForgetComment   = forgetComment
)
