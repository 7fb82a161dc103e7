/** SSH keys of accounts over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { DeletedSshKey, NewSshKey, SshKey, SshKeyPath } from './ssh-key-schema.ts';
import type { SshKeys } from './ssh-keys.ts';

export interface SshKeyRoutesDeps {
  readonly sshKeys: SshKeys;
}

const KEYS = '/api/account/ssh-keys';

export function sshKeyRoutes({ sshKeys }: SshKeyRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: KEYS,
      name: 'addSshKey',
      audit: { detail: ['name'] },
      tag: 'compute',
      summary: 'Store an SSH public key under a name, for new virtual machines',
      description: 'At most 100 for each account. `ssh_key_names` of `POST /api/vms` names them.',
      permission: 'compute:write',
      body: NewSshKey,
      responses: { 201: SshKey },
      errors: ['ssh_key_exists', 'quota_exceeded'],
      handler: (call) => sshKeys.add(call, call.body),
    }),
    defineRoute({
      method: 'GET',
      path: KEYS,
      name: 'listSshKeys',
      tag: 'compute',
      summary: 'List the SSH keys of your account, oldest first',
      permission: 'compute:read',
      responses: { 200: Type.Array(SshKey) },
      handler: ({ principal }) => sshKeys.list(principal),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${KEYS}/{name}`,
      name: 'deleteSshKey',
      tag: 'compute',
      summary: 'Delete an SSH key of your account; virtual machines that have it keep it',
      permission: 'compute:write',
      params: SshKeyPath,
      responses: { 200: DeletedSshKey },
      errors: ['ssh_key_not_found'],
      handler: (call) => sshKeys.remove(call, call.params.name),
    }),
  ];
}
