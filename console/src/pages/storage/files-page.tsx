import { useParams } from '@tanstack/react-router';
import { Page } from '../../parts/page.tsx';

export function FilesPage() {
  const { bucket } = useParams({ from: '/shell/storage/$bucket' });
  return <Page title={bucket}>{null}</Page>;
}
