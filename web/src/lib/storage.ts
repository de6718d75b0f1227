// What the browser keeps for the page. It may be switched off or full, and anybody who has
// sat at this browser may have changed it: nothing of the page depends on it.

export const storage = {
  get(name: string): string | null {
    try {
      return localStorage.getItem(name)
    } catch {
      return null
    }
  },
  set(name: string, value: string) {
    try {
      localStorage.setItem(name, value)
    } catch {
      // it is not kept over a reload
    }
  },
  remove(name: string) {
    try {
      localStorage.removeItem(name)
    } catch {
      // there is none
    }
  },
  /** The names that begin with a prefix. */
  names(prefix: string): string[] {
    try {
      return Object.keys(localStorage).filter((name) => name.startsWith(prefix))
    } catch {
      return []
    }
  },
}
