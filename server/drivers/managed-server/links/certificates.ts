/** Cloudlet's own certificate authority and server certificates (X.509 v3, ECDSA on P-256). */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { randomSecret } from '../../../platform/ids.ts';

/** In PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

interface Span {
  /** Wall time, ms. */
  readonly from: number;
  readonly until: number;
}

const SERIAL_BYTES = 16;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT = 0x06;
const UTF8 = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
const TRUE = Buffer.from([0x01, 0x01, 0xff]);
/** Object identifiers, as DER has them. */
const ECDSA_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const KEY_ID = '551d0e';
const KEY_USAGE = '551d0f';
const NAMES = '551d11';
const BASIC = '551d13';
const AUTHORITY_KEY_ID = '551d23';
const EXTENDED_USAGE = '551d25';
const SERVER_AUTH = '2b06010505070301';
/** Bits of KEY_USAGE, after the number of unused bits. */
const SIGNS_CERTIFICATES = Buffer.from([2, 0x04]);
const SIGNS = Buffer.from([7, 0x80]);

/** Creates a CA certificate. */
export function makeAuthority(name: string, span: Span): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const extensions = [
    extension(BASIC, sequence(TRUE), true),
    extension(KEY_USAGE, der(BIT_STRING, SIGNS_CERTIFICATES), true),
    extension(KEY_ID, der(OCTET_STRING, keyId(spki))),
  ];
  return { cert: signed({ subject: name, issuer: name, span, spki, extensions }, key), key };
}

/** Makes the certificate of a server that is reached by these names and addresses. */
export function makeServerCertificate(
  authority: { readonly name: string; readonly key: string },
  names: readonly string[],
  span: Span,
): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const issuerSpki = createPublicKey(createPrivateKey(authority.key)).export({ type: 'spki', format: 'der' });
  const extensions = [
    extension(BASIC, sequence(), true),
    extension(KEY_USAGE, der(BIT_STRING, SIGNS), true),
    extension(EXTENDED_USAGE, sequence(der(OBJECT, hex(SERVER_AUTH)))),
    extension(NAMES, sequence(...names.map(generalName))),
    extension(KEY_ID, der(OCTET_STRING, keyId(spki))),
    extension(AUTHORITY_KEY_ID, sequence(der(0x80, keyId(issuerSpki)))),
  ];
  const subject = names[0] as string;
  return { cert: signed({ subject, issuer: authority.name, span, spki, extensions }, authority.key), key };
}

interface CertificateFields {
  readonly subject: string;
  readonly issuer: string;
  readonly span: Span;
  readonly spki: Buffer;
  readonly extensions: readonly Buffer[];
}

function signed({ subject, issuer, span, spki, extensions }: CertificateFields, key: string): string {
  const algorithm = sequence(der(OBJECT, hex(ECDSA_SHA256)));
  const serial = randomSecret(SERIAL_BYTES);
  // Positive, and not shortened.
  serial[0] = ((serial[0] as number) & 0x7f) | 0x40;
  const tbsCertificate = sequence(
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    algorithm,
    commonName(issuer),
    sequence(utcTime(span.from), utcTime(span.until)),
    commonName(subject),
    spki,
    der(0xa3, sequence(...extensions)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', tbsCertificate, key)]);
  const bytes = sequence(tbsCertificate, algorithm, der(BIT_STRING, signature));
  const lines = bytes.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  const parts = [der(OBJECT, hex(id)), ...(isCritical ? [TRUE] : []), der(OCTET_STRING, value)];
  return sequence(...parts);
}

function commonName(name: string): Buffer {
  return sequence(
    der(SET, sequence(der(OBJECT, hex(COMMON_NAME)), der(UTF8, Buffer.from(name.slice(0, 64))))),
  );
}

function generalName(name: string): Buffer {
  return isIP(name) === 0 ? der(0x82, Buffer.from(name, 'latin1')) : der(0x87, addressBytes(name));
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [left = '', right] = address.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const [before, after] = [groups(left), groups(right ?? '')];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  const all = [...before, ...zeros, ...after].map((group) => group.padStart(4, '0'));
  return hex(all.join(''));
}

/** Valid until 2049, the limit of this format. */
function utcTime(time: number): Buffer {
  const digits = new Date(time).toISOString().replace(/\D/g, '');
  return der(UTC_TIME, Buffer.from(`${digits.slice(2, 14)}Z`, 'latin1'));
}

function keyId(spki: Buffer): Buffer {
  return createHash('sha256').update(spki).digest().subarray(0, 20);
}

function hex(text: string): Buffer {
  return Buffer.from(text, 'hex');
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(SEQUENCE, ...parts);
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const bytes = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...bytes]), body]);
}
