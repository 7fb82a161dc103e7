/** Two settings in XML: object ownership and the public access block. */

import { child, children, parseXml, S3Error, textOf, xmlDocument } from '../../../libs/s3-wire/index.ts';
import type { Ownership, PublicAccess } from '../../storage/buckets/bucket-settings.ts';

export const ACCESS_MAX_BYTES = 16 * 1024;
const OWNERSHIPS: readonly string[] = ['BucketOwnerEnforced', 'BucketOwnerPreferred', 'ObjectWriter'];
const SWITCHES = {
  blockAcls: 'BlockPublicAcls',
  ignoreAcls: 'IgnorePublicAcls',
  blockPolicy: 'BlockPublicPolicy',
  restrict: 'RestrictPublicBuckets',
} as const satisfies Record<keyof PublicAccess, string>;

/** Throws S3Error MalformedXML. */
export function readPublicAccess(body: Buffer): PublicAccess {
  const root = parseXml(body, ACCESS_MAX_BYTES);
  if (root.name !== 'PublicAccessBlockConfiguration') throw new S3Error('MalformedXML');
  const read = (name: string) => {
    const text = textOf(root, name)?.trim().toLowerCase() ?? 'false';
    if (text !== 'true' && text !== 'false') throw new S3Error('MalformedXML');
    return text === 'true';
  };
  return {
    blockAcls: read(SWITCHES.blockAcls),
    ignoreAcls: read(SWITCHES.ignoreAcls),
    blockPolicy: read(SWITCHES.blockPolicy),
    restrict: read(SWITCHES.restrict),
  };
}

export function publicAccessDocument(switches: PublicAccess): string {
  const names = Object.keys(SWITCHES) as (keyof PublicAccess)[];
  return xmlDocument(
    'PublicAccessBlockConfiguration',
    names.map((name) => [SWITCHES[name], switches[name]] as const),
  );
}

/** Throws S3Error InvalidArgument. */
export function ownershipOf(text: string): Ownership {
  if (OWNERSHIPS.includes(text)) return text as Ownership;
  throw new S3Error('InvalidArgument', 'Invalid x-amz-object-ownership header', {
    fields: { ArgumentName: 'x-amz-object-ownership', ArgumentValue: text },
  });
}

/** Throws S3Error MalformedXML. */
export function readOwnership(body: Buffer): Ownership {
  const root = parseXml(body, ACCESS_MAX_BYTES);
  const rules = children(root, 'Rule');
  const [rule] = rules;
  const text = rule && child(rule, 'ObjectOwnership')?.text.trim();
  if (
    root.name !== 'OwnershipControls' ||
    rules.length !== 1 ||
    text === undefined ||
    !OWNERSHIPS.includes(text)
  ) {
    throw new S3Error('MalformedXML');
  }
  return text as Ownership;
}

export function ownershipDocument(ownership: Ownership): string {
  return xmlDocument('OwnershipControls', [['Rule', [['ObjectOwnership', ownership]]]]);
}
