/**
 * The second secret of a browser's session. Cookies are not bound to ports: programs on other ports
 * of the cloud's host can read the first one, but it is useless alone.
 */
export interface SessionToken {
  read(): string | undefined;
  /** undefined: the session has ended. */
  write(token: string | undefined): void;
}

/** The name in localStorage; the server's set-up page writes it too. */
const NAME = 'cloudlet-session';

/**
 * Kept in localStorage, which browsers bind to scheme, host and port, and which all tabs share; in
 * memory if there is none.
 */
export function pageSession(): SessionToken {
  let own: string | undefined;
  const storage = () => (globalThis.document === undefined ? undefined : globalThis.localStorage);
  return {
    read() {
      try {
        return storage()?.getItem(NAME) ?? own;
      } catch {
        return own; // the browser stores nothing for this page
      }
    },
    write(token) {
      own = token;
      try {
        if (token === undefined) storage()?.removeItem(NAME);
        else storage()?.setItem(NAME, token);
      } catch {
        // The session then lasts as long as the page.
      }
    },
  };
}
