import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { S3_ERRORS, S3Error } from '../../libs/s3-wire/index.ts';
import { AppError, ERRORS, type ErrorCode } from '../platform/errors.ts';
import { toS3Error } from './domain-errors.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];
const EXPECTED: Readonly<Partial<Record<ErrorCode, [code: string, status: number]>>> = {
  bucket_not_found: ['NoSuchBucket', 404],
  object_not_found: ['NoSuchKey', 404],
  version_not_found: ['NoSuchVersion', 404],
  precondition_failed: ['PreconditionFailed', 412],
  scope_required: ['AccessDenied', 403],
  account_suspended: ['AccessDenied', 403],
  insufficient_credits: ['AccessDenied', 403],
  spend_cap_reached: ['AccessDenied', 403],
  quota_exceeded: ['QuotaExceeded', 403],
  payload_too_large: ['EntityTooLarge', 400],
  out_of_space: ['ServiceUnavailable', 503],
  overloaded: ['SlowDown', 503],
  read_only: ['ServiceUnavailable', 503],
  bucket_exists: ['BucketAlreadyOwnedByYou', 409],
  bucket_not_empty: ['BucketNotEmpty', 409],
  invalid_bucket_name: ['InvalidBucketName', 400],
  range_not_satisfiable: ['InvalidRange', 416],
  write_conflict: ['ConditionalRequestConflict', 409],
  rate_limited: ['SlowDown', 503],
  data_corrupted: ['InternalError', 500],
};

describe('failures of the domains', () => {
  for (const code of CODES) {
    test(`${code} has an S3 code`, () => {
      const error = toS3Error(new AppError(code, 'Detail'));
      assert.equal(error.status, S3_ERRORS[error.code].status);
      assert.equal(error.message, 'Detail');
      // The class of the status stays the same: clients retry after a 5xx, and only then.
      if (code !== 'rate_limited') assert.equal(error.status >= 500, ERRORS[code].http >= 500);
      const expected = EXPECTED[code];
      if (expected !== undefined) assert.deepEqual([error.code, error.status], expected);
    });
  }

  test('the hint follows the detail, and headers come along', () => {
    const error = toS3Error(
      new AppError('rate_limited', 'Too fast', {
        hint: 'Wait a little',
        retryAfterSeconds: 7,
        headers: { 'content-range': 'bytes */5' },
      }),
    );
    assert.equal(error.message, 'Too fast. Wait a little');
    assert.deepEqual(error.headers, { 'content-range': 'bytes */5', 'retry-after': '7' });
  });

  test('an unknown error shows nothing of itself', () => {
    const cause = new TypeError('secret path /etc');
    const error = toS3Error(cause);
    assert.deepEqual([error.code, error.status, error.cause], ['InternalError', 500, cause]);
    assert.doesNotMatch(error.message, /secret/);
  });

  test('an S3Error stays itself', () => {
    const error = new S3Error('NoSuchUpload');
    assert.equal(toS3Error(error), error);
  });
});
