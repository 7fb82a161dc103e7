/**
 * TLS of managed servers. For users on other hosts, with the operator's certificate, or with our
 * own, whose CA certificate users get. On this host alone, drivers may use it, always with our own
 * certificate.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import * as fs from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Endpoint } from '../../../databases/engine.ts';
import type { Clock } from '../../../platform/clock.ts';
import { AppError } from '../../../platform/errors.ts';
import { writeDurableFile } from '../../../platform/files.ts';
import { type Certificate, makeAuthority, makeServerCertificate } from './certificates.ts';

export interface ServerTlsOptions {
  /** Host name or address for users on other hosts; empty: none. */
  readonly host: string;
  /** Host in connection strings; empty or missing: `host`. */
  readonly shownHost?: string;
  /** Paths of the operator's certificate and key; empty: ours. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Cloudlet's directory for the certificate authority only. */
  readonly folder: string;
  readonly clock: Clock;
}

/** Files in the server's home. */
export const CERT_FILE = 'tls.crt';
export const KEY_FILE = 'tls.key';
const AUTHORITY = 'Cloudlet databases';
const LOOPBACK = '127.0.0.1';
const DAY_MS = 86_400_000;
/** Some systems trust no server's certificate for longer than 825 days. */
const SERVER_DAYS = 800;
const AUTHORITY_DAYS = 15 * 365;

/** PEM text without an editor's byte order mark, for programs other than OpenSSL's. */
export function pemText(path: string): string {
  return new TextDecoder().decode(fs.readFileSync(path));
}

export class ServerTls {
  /** Host in connection strings. */
  readonly host: string;
  readonly #options: ServerTlsOptions;
  #known: Certificate | null = null;

  constructor(options: ServerTlsOptions) {
    this.host = options.shownHost || options.host || LOOPBACK;
    this.#options = options;
  }

  /** Whether unencrypted connections are refused. */
  get isRequired(): boolean {
    return this.#options.host !== '';
  }

  /** Addresses to listen on: all, if only a name is known. */
  get listen(): readonly string[] {
    const host = this.#options.host || LOOPBACK;
    return isIP(host) === 0 ? ['*'] : [...new Set([LOOPBACK, host])];
  }

  /** The CA that verifies the servers (PEM); null: the operator's certificate has another one. */
  get ca(): string | null {
    return this.#isGiven ? null : this.#authority().cert;
  }

  /** Installs certificate and key in `home`, readable by that user. Throws `engine_unavailable`. */
  install(home: string, uid: number | null): void {
    const { cert, key } = this.certificate();
    for (const [name, text] of [
      [CERT_FILE, cert],
      [KEY_FILE, key],
    ] as const) {
      const path = join(home, name);
      // The folder is not ours: anything with that name, even a link, is removed first.
      fs.rmSync(path, { force: true });
      fs.writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
      if (uid !== null) fs.lchownSync(path, uid, uid);
    }
  }

  /** Renews our certificate. Throws `engine_unavailable`. */
  certificate(): Certificate {
    return this.#isGiven ? this.#given() : this.#made();
  }

  get #isGiven(): boolean {
    return this.isRequired && this.#options.certFile !== '';
  }

  #made(): Certificate {
    const now = this.#options.clock.now();
    // This host's own programs may connect as before.
    const names = [...new Set([this.host, this.#options.host || LOOPBACK, 'localhost', LOOPBACK])];
    const span = { from: now - DAY_MS, until: now + SERVER_DAYS * DAY_MS };
    return makeServerCertificate({ name: AUTHORITY, key: this.#authority().key }, names, span);
  }

  #given(): Certificate {
    const { certFile, keyFile } = this.#options;
    try {
      const [cert, key] = [certFile, keyFile].map(pemText) as [string, string];
      new X509Certificate(cert);
      return { cert, key };
    } catch (error) {
      throw new AppError('engine_unavailable', 'The certificate of the database servers cannot be read', {
        hint: 'correct CLOUDLET_TLS_CERT and CLOUDLET_TLS_KEY: PEM files that Cloudlet can read',
        cause: error,
      });
    }
  }

  /** Made once. */
  #authority(): Certificate {
    this.#known ??= this.#keptAuthority();
    return this.#known;
  }

  #newAuthority(): Certificate {
    const now = this.#options.clock.now();
    return makeAuthority(AUTHORITY, { from: now - DAY_MS, until: now + AUTHORITY_DAYS * DAY_MS });
  }

  /** Users have the CA in their settings. */
  #keptAuthority(): Certificate {
    const { folder } = this.#options;
    const path = join(folder, 'authority.pem');
    if (!fs.existsSync(path)) {
      fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
      const { cert, key } = this.#newAuthority();
      writeDurableFile(path, cert + key, 0o600);
    }
    const text = fs.readFileSync(path, 'utf8');
    const at = text.indexOf('-----BEGIN PRIVATE KEY');
    const found = { cert: text.slice(0, at), key: text.slice(at) };
    assertWhole(found);
    return found;
  }
}

/** Address for users; `uri` is derived from it. */
export type Address = Omit<Endpoint, 'uri' | 'verified'>;

/** Address for users, with TLS if required. */
export function endpointOf(port: number | null, tls: ServerTls | null): Address {
  const isRequired = tls?.isRequired ?? false;
  const ca = tls !== null && isRequired ? tls.ca : null;
  return { host: tls?.host ?? LOOPBACK, port: port ?? 0, tls: isRequired, ca };
}

/** The address with TLS; null: not available, or always used. */
export function verifiedEndpointOf(port: number | null, tls: ServerTls | null): Address | null {
  if (tls === null || tls.isRequired) return null;
  return { ...endpointOf(port, tls), tls: true, ca: tls.ca };
}

/** `db.example:5432`. */
export function hostAndPort({ host, port }: Pick<Endpoint, 'host' | 'port'>): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Throws `engine_unavailable`. */
function assertWhole({ cert, key }: Certificate): void {
  try {
    if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return;
  } catch {
    // The file is not a certificate.
  }
  throw new AppError('engine_unavailable', 'The certificate authority of the database servers is damaged', {
    hint:
      'restore databases/tls/authority.pem in the data directory from a copy, or remove it and restart: ' +
      'Cloudlet then creates a new authority, which users of databases must trust',
  });
}
