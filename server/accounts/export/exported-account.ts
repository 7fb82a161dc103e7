/** The account itself in an export: its description, and the names and rights of its keys. */
import { type Exporting, type ExportSource, jsonFile } from '../../calls/account-export.ts';
import { accountNotFound } from '../account-errors.ts';
import { describeForAdmin } from '../account-view.ts';
import type { AccessKeys } from '../keys/access-keys.ts';
import type { AccountStore } from '../store.ts';

export interface ExportedAccountDeps {
  readonly store: Pick<AccountStore, 'account' | 'lastSeenAt'>;
  readonly accessKeys: Pick<AccessKeys, 'list'>;
}

export class ExportedAccount implements ExportSource {
  readonly #deps: ExportedAccountDeps;

  constructor(deps: ExportedAccountDeps) {
    this.#deps = deps;
  }

  async *files({ owner }: Exporting) {
    const { store, accessKeys } = this.#deps;
    const row = await store.account(owner.accountId);
    if (row === undefined) throw accountNotFound();
    yield jsonFile('account.json', describeForAdmin(row, await store.lastSeenAt(row.id)));
    const keys = await Array.fromAsync(
      accessKeys.list(owner, { afterId: '', limit: Number.MAX_SAFE_INTEGER }),
    );
    yield jsonFile('access-keys.json', keys);
  }
}
