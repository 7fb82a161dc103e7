/** SSH keys that an account keeps by name, for its new machines. */
import type { Call, Principal } from '../../calls/principal.ts';
import { type Changes, turnAt } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, assertFields, invalidField } from '../../platform/errors.ts';
import { fingerprintOf } from '../machines/lent-keys.ts';
import { sshKeyProblem } from '../machines/vm-fields.ts';
import type { DeletedSshKey, NewSshKey, SshKey } from './ssh-key-schema.ts';
import type { SshKeyRow, SshKeyStore } from './ssh-key-store.ts';

/** Per account. */
const MAX_KEYS = 100;

export interface SshKeysDeps {
  readonly changes: Changes;
  readonly keyStore: SshKeyStore;
  readonly clock: Clock;
}

export class SshKeys {
  readonly #deps: SshKeysDeps;

  constructor(deps: SshKeysDeps) {
    this.#deps = deps;
  }

  /** Oldest first. */
  async list({ accountId }: Principal): Promise<SshKey[]> {
    return (await this.#deps.keyStore.listOf(accountId)).map(presented);
  }

  /** Throws `invalid_request`, `ssh_key_exists`, `quota_exceeded` for more than 100. */
  async add(call: Call, { name, public_key }: NewSshKey): Promise<SshKey> {
    const line = public_key.trim();
    const problem = sshKeyProblem(line);
    if (problem !== undefined) throw invalidField('public_key', problem);
    const { changes, keyStore, clock } = this.#deps;
    const row = { account_id: call.principal.accountId, name, public_key: line, created_at: clock.now() };
    return changes.run(call, (change) => {
      change.add(turnAt('accounts', row.account_id));
      change.expect(keyStore.insert(row, MAX_KEYS), (reason) =>
        reason === 'unique' ? taken(name) : tooMany(),
      );
      return presented(row);
    });
  }

  /** Machines that were created with it keep it. Throws `ssh_key_not_found`. */
  async remove(call: Call, name: string): Promise<DeletedSshKey> {
    const { changes, keyStore } = this.#deps;
    return changes.run(call, (change): DeletedSshKey => {
      change.expect(keyStore.delete(call.principal.accountId, name), notFound);
      return { name, deleted: true };
    });
  }

  /** The keys of these names, after `given`, each once. Throws `invalid_request` for unknown names. */
  async linesOf(
    { accountId }: Principal,
    { given, names }: { readonly given: readonly string[]; readonly names: readonly string[] },
  ): Promise<readonly string[]> {
    const rows = await this.#deps.keyStore.listOf(accountId);
    const kept = new Map(rows.map(({ name, public_key }) => [name, public_key]));
    const message = 'must be the name of one of your SSH keys';
    const unknown = names.flatMap((name, index) =>
      kept.has(name) ? [] : [{ field: `ssh_key_names.${index}`, message }],
    );
    assertFields(unknown);
    return [...new Set([...given, ...names.map((name) => kept.get(name) ?? '')])];
  }
}

function presented({ name, public_key, created_at }: SshKeyRow): SshKey {
  return { name, public_key, fingerprint: fingerprintOf(public_key), created_at: formatTime(created_at) };
}

function taken(name: string): AppError {
  return new AppError('ssh_key_exists', `You already have an SSH key named ${name}`, {
    hint: 'Delete that key first, or use another name',
  });
}

function tooMany(): AppError {
  return new AppError('quota_exceeded', `An account has at most ${MAX_KEYS} SSH keys`, {
    hint: 'Delete a key first',
    extra: { limit: MAX_KEYS, used: MAX_KEYS, requested: 1 },
  });
}

function notFound(): AppError {
  return new AppError('ssh_key_not_found', 'You have no SSH key with this name');
}
