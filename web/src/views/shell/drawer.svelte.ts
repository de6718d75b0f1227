// On a phone the list of chats is a drawer over the page.

let open = $state(false)

export const drawer = {
  get open() {
    return open
  },
  show: () => (open = true),
  hide: () => (open = false),
}
