/** The refusals of uploads in parts. */
import { AppError, isAppError } from '../../platform/errors.ts';

export function uploadNotFound(uploadId: string): AppError {
  return new AppError('upload_not_found', `There is no upload ${uploadId} in progress`, {
    hint: 'The upload was completed, aborted or never started',
  });
}

/** Ignores an upload that another request ended first. */
export function ignoreEnded(error: unknown): void {
  if (!isAppError(error, 'upload_not_found')) throw error;
}

export function tooManyUploads(bucket: string, most: number): AppError {
  return new AppError('quota_exceeded', `The bucket ${bucket} has ${most} uploads in progress`, {
    hint: 'Complete or abort some uploads',
  });
}

export function partConflict(): AppError {
  return new AppError('write_conflict', 'A part changed while the upload was being completed', {
    hint: 'List the parts, then complete the upload again',
  });
}
