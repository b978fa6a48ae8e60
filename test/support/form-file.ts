import { formFile, type FileContent, type FormFile, type MoveFile } from '../../lib/http/form.ts'

/** For forms whose files are not moved. */
export const noMove: MoveFile = () => Promise.reject(new Error('The test moves no files'))

/** A file of a form, from its members. */
export const fileOf = (content: FileContent): FormFile => formFile(content, noMove)
