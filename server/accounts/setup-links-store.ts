/** The SQL of the set-up link. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export class SetupLinkStore {
  readonly #reads: Reads;

  constructor(deps: { readonly reads: Reads }) {
    this.#reads = deps.reads;
  }

  find(tokenHash: string): Awaitable<{ expires_at: number } | undefined> {
    return this.#reads.get('SELECT expires_at FROM setup_links WHERE token_hash = ?', tokenHash);
  }

  replace(tokenHash: string, expiresAt: number): Statement[] {
    return [
      { sql: 'DELETE FROM setup_links', params: [] },
      {
        sql: 'INSERT INTO setup_links (token_hash, expires_at) VALUES (?, ?)',
        params: [tokenHash, expiresAt],
      },
    ];
  }

  /** Refused when the link was used meanwhile. */
  use(tokenHash: string): Statement {
    return { sql: 'DELETE FROM setup_links WHERE token_hash = ?', params: [tokenHash], expectChanges: 1 };
  }
}
