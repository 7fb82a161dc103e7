/**
 * The second secret of a browser's session. Cookies know no ports: programs behind other ports of the cloud's
 * host see the first one, and open nothing by it.
 */
export interface SessionToken {
  read(): string | undefined;
  /** undefined: the session is over. */
  write(token: string | undefined): void;
}

/** The name in localStorage; the server's set-up page writes it too. */
const NAME = 'cloudlet-session';

/**
 * Kept in localStorage, which browsers bind to scheme, host and port, and which the tabs of a browser share;
 * in memory where there is none.
 */
export function pageSession(): SessionToken {
  let own: string | undefined;
  const storage = () => (globalThis.document === undefined ? undefined : globalThis.localStorage);
  return {
    read() {
      try {
        return storage()?.getItem(NAME) ?? own;
      } catch {
        return own; // the browser keeps nothing for this page
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
