/**
 * Distinguishes the running clouds of this host from killed ones. A cloud that adds rules holds a socket
 * without a file: the kernel keeps it in the same network namespace as the rules, and removes it when the
 * process ends for any reason. So neither a moved directory nor a reused process id is misleading, and clouds
 * in different containers of one network see each other.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { randomSecret } from '../../platform/ids.ts';

export interface CloudClaimDeps {
  /** `cld-…` */
  readonly cloudId: string;
  /** First user id of its guests: names rules and bridges that clouds with the same users share. */
  readonly uidBase: number;
  /** For people. */
  readonly dataDir: string;
}

/** A running cloud. */
export interface LivingCloud {
  readonly uidBase: number;
  /** Unique per process, also within a cloud. */
  readonly token: string;
}

const LIST = '/proc/net/unix';
const CLAIM = /@cloudlet\/\S+?\/(\d+)\/([0-9a-f]+)$/gm;
const TOKEN_BYTES = 6;
/** A comment of nftables has at most 128 bytes. */
const MAX_COMMENT = 128;
const MARKED = /comment "(cloudlet cld-[^"]*)"/;

const OWNER = /^cloudlet (\S+), process \d+, (\/.*)$/;

export class CloudClaim {
  readonly #deps: CloudClaimDeps;
  readonly token = randomSecret(TOKEN_BYTES).toString('hex');
  #socket: Promise<Server | null> | undefined;

  constructor(deps: CloudClaimDeps) {
    this.#deps = deps;
  }

  /** `cld-…` */
  get cloudId(): string {
    return this.#deps.cloudId;
  }

  /** A unique part of names in nftables. */
  get mark(): string {
    return `${this.#deps.cloudId.replaceAll('-', '_')}_${this.token}`;
  }

  /** Text for a comment of a rule: which cloud placed it. */
  get comment(): string {
    const { cloudId, dataDir } = this.#deps;
    const text = `cloudlet ${cloudId}, process ${process.pid}, ${dataDir.replace(/[^\w./+-]/g, '?')}`;
    return text.slice(0, MAX_COMMENT);
  }

  /** False: this host does not allow it; rules with our name would then look like those of a dead cloud. */
  async hold(): Promise<boolean> {
    const { cloudId, uidBase } = this.#deps;
    this.#socket ??= listenAt(`\0cloudlet/${cloudId}/${uidBase}/${this.token}`);
    return (await this.#socket) !== null;
  }

  /** Call it once the rules are gone. */
  async close(): Promise<void> {
    (await this.#socket)?.close();
  }
}

function listenAt(name: string): Promise<Server | null> {
  const server = createServer((client) => client.destroy());
  return new Promise((resolve) => {
    server.on('error', () => resolve(null));
    server.listen(name, () => resolve(server.unref()));
  });
}

/** Running clouds on this host's network, including this one; null: unknown. */
export function livingClouds(): readonly LivingCloud[] | null {
  try {
    const found = readFileSync(LIST, 'latin1').matchAll(CLAIM);
    return [...found].map(([, uidBase, token = '']) => ({ uidBase: Number(uidBase), token }));
  } catch {
    return null;
  }
}

/** The comment in nftables' listing that names the cloud that made the table; null: none. */
export function commentIn(listed: string): string | null {
  return MARKED.exec(listed)?.[1] ?? null;
}

/**
 * Cloud and directory of such a comment; null: it was cut, or the name of the folder does not fit in a
 * comment.
 */
export function ownerOf(comment: string): { readonly cloudId: string; readonly dataDir: string } | null {
  const [, cloudId, dataDir = ''] = OWNER.exec(comment) ?? [];
  const isWhole = comment.length < MAX_COMMENT && !dataDir.includes('?');
  return cloudId === undefined || !isWhole ? null : { cloudId, dataDir };
}
