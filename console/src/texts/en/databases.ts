export const databases = {
  title: 'Databases',
  soon: 'These pages are on their way. The API has everything already.',
};
