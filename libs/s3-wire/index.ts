/** S3 on the wire: signatures, XML, checksums, chunked bodies. See README.md. */
export {
  base64Digest,
  type ChecksumAlgorithm,
  type ChecksumType,
  checksumHeader,
  checksumsIn,
  combineCrc,
  type HeaderChecksums,
  headerChecksums,
  IN_HEADERS,
  readChecksum,
} from './checksums.ts';
export { ChunkedBody } from './chunked-body.ts';
export { type Payload, readFormScope } from './credentials.ts';
export { type Digests, digestsOf, newDigest } from './digests.ts';
export { oldClaim } from './old-signature.ts';
export { type Digest, type DigestName, newPortableDigest } from './portable-digests.ts';
export { S3_ERRORS, type S3Code, S3Error } from './s3-error.ts';
export {
  type AmzPair,
  amzPairs,
  anonymousPayload,
  type Claim,
  claimOf,
  deriveKey,
  isSameText,
  mayBeOld,
  type RequestHead,
  readHead,
  splitTarget,
  type VerifiedSignature,
} from './signature.ts';
export { pathOf, presignedUrl, queryText, type Signer, signedHeaders } from './signing.ts';
export {
  bareDocument,
  child,
  children,
  decodeKey,
  encodeKey,
  errorDocument,
  parseXml,
  readXml,
  textOf,
  type XmlElement,
  XmlError,
  type XmlNode,
  xmlDocument,
} from './xml.ts';
